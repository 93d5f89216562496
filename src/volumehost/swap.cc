#include "volumehost/swap.h"

#include "base/strings.h"

namespace volumed {

bool SwapIsOn(std::string_view proc_swaps) { return SplitNonEmpty(proc_swaps, '\n').size() > 1; }

}  // namespace volumed
