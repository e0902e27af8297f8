#include <flashtracer/cuda.h>
