#include <flashtracer/cute_sm90.h>
