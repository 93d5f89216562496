// Page tokens of the control API: the `next_page` of an answer, and the `page` of the request that
// asks for what follows. A token is text that came back from a client, so it may be anything.
//
//   pods/NAMESPACE/NAME/UID    the last pod of the page before. The namespace and the name are
//                              empty for a pod of which only the directory is known.
//
// The first part names the list. A token is a place in the order of its list, not a number or a
// pod that must still exist: the next page begins behind it, whatever has gone or come meanwhile.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "volumemanager/views/view_types.h"

namespace volumed {

// Longer than any token of a list: a namespace, a name and a uid have 63, 253 and 255 bytes.
inline constexpr size_t kMaxPageToken = 1024;

// The token of the page that begins behind this pod. Threads: any. Blocks: never.
std::string PodPageToken(const PodName& last);

// REQUIRES nothing of the token. Every token of PodPageToken() is read as its pod, and whatever
// else is taken is what PodPageToken() makes of it. Errors: InvalidArgument, not applied, for a
// token that is too long, of another list, or of another shape; their text does not repeat it.
Result<PodName> ParsePodPageToken(std::string_view token);

}  // namespace volumed
