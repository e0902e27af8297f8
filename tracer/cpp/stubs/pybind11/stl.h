#include <flashtracer/pybind.h>
