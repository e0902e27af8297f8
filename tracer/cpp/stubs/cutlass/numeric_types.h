#include <flashtracer/cutlass.h>
