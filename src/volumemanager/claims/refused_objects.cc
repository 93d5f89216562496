#include "volumemanager/claims/refused_objects.h"

#include "kube/refusal_text.h"

namespace volumed {

std::string WayBackText(const std::string& file) {
  return "to have one of its name again, take it out of " + file +
         ", wait for removal-settle and put it back, or give it by `volumectl apply`: "
         "it is another one then";
}

std::string RefusedText(ObjectKind kind, const ObjectOrigin& origin) {
  return std::string(HowDeletedText(kind)) + " and " + origin.file + " still has it; " +
         WayBackText(origin.file);
}

}  // namespace volumed
