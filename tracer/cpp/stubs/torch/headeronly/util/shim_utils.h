#include <flashtracer/torch_stable.h>
