// Has no `plan`.
#include "hostile.h"

ENTRY(NULL)
