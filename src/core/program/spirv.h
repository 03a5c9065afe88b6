/* The little of SPIR-V that has to be known to check clSetProgramSpecializationConstant (SPIR-V
 * specification, 2.3 "Physical Layout of a SPIR-V Module"). No state. */
#ifndef SPANCL_CORE_SPIRV_H
#define SPANCL_CORE_SPIRV_H

#include <stdbool.h>

#include "base/bytes.h"

/* Does it begin as a module, of either byte order, and do its instructions fill it? */
bool spirv_valid(struct bytes il);

/* Size in bytes of the specialization constant `id`; 0: there is none. Booleans are one byte. */
size_t spirv_constant_size(struct bytes il, uint32_t id);

#endif
