#include <flashtracer/std.h>
