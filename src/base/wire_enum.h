// WireEnum: what a number that is no value of an enum is read as; see base/wire_fields.h.
#pragma once

namespace volumed {

// The values of an enum go from zero to `last`; any other number is read as `otherwise`. An enum
// that wants this has a function WireEnumOf(E) that answers it.
template <typename E>
struct WireEnum {
  E last;
  E otherwise;
};

}  // namespace volumed
