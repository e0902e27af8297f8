#include <flashtracer/cute.h>
