// Page tokens of the CSI driver's lists: the `next_token` of an answer, and the `starting_token` of
// the request for what follows.
//
//   volumes/v-3fa91c02-0123456789abcdef01234567    the last volume of the page before
//
// A token is a place in the order of ids, and not a number or a volume that must still be there:
// the next page begins behind it, whatever has gone or come meanwhile. A token is text that came
// back from a caller, so it may be anything.
//
// Pure; threads: any. Blocks: never.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "pool/pool_id.h"

namespace volumed {

// The token of the page that begins behind this object of a pool. The list is that of its kind.
// REQUIRES: an id.
std::string CsiPageToken(std::string_view last_id);

// The id behind which the page of a list of such objects begins; empty for the empty token, which
// is the first page. Errors: Aborted, not applied, as the specification has it, for what is no
// token of this list; their text does not repeat it. Source: CSI spec v1.13.0, "ListVolumes
// Errors".
Result<std::string> ParseCsiPageToken(std::string_view token, PoolObject list);

}  // namespace volumed
