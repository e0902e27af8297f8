#include <flashtracer/cutlass_sm90.h>
