#include <flashtracer/language.h>
