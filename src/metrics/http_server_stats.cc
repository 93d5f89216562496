#include "metrics/http_server_stats.h"

namespace volumed {

std::string_view HttpServerStats::ClosedName(Closed closed) {
  switch (closed) {
    case Closed::kDone:
      return "done";
    case Closed::kIdle:
      return "idle";
    case Closed::kHeaderTimeout:
      return "header_timeout";
    case Closed::kWriteTimeout:
      return "write_timeout";
    case Closed::kMadeRoom:
      return "made_room";
    case Closed::kRefused:
      return "refused";
  }
  return "unknown";
}

}  // namespace volumed
