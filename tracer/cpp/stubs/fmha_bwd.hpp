#include <flashtracer/ck_tile.h>
