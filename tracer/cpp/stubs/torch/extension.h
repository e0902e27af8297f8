#include <flashtracer/torch.h>
