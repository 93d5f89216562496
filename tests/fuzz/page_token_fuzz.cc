// The page that a client asks for: what is taken is written as it was read, and whatever the parts
// of a pod's name are, the token of it is read as that pod.
#include "agent/page_token.h"

#include "fuzz/fuzz.h"

namespace volumed::page_token_fuzz {
namespace {

void CheckToken(std::string_view token) {
  const Result<PodName> pod = ParsePodPageToken(token);
  if (!pod.ok()) {
    FUZZ_CHECK(pod.error().code() == Code::kInvalidArgument);
    FUZZ_CHECK(!pod.error().maybe_applied());
    FUZZ_CHECK(pod.error().message().size() < 200);
    return fuzz::CheckError(pod.error());
  }
  FUZZ_CHECK(token.size() <= kMaxPageToken);
  FUZZ_CHECK(!pod->uid.empty());
  FUZZ_CHECK(PodPageToken(*pod) == token);
}

// The input as the parts of a name, which have no slash.
void CheckName(std::string_view text) {
  const fuzz::Halves ns = fuzz::Cut(text, '/');
  const fuzz::Halves name = fuzz::Cut(ns.behind, '/');
  const fuzz::Halves uid = fuzz::Cut(name.behind, '/');
  const PodName pod{std::string(ns.before), std::string(name.before),
                    PodUid(std::string(uid.before))};
  const std::string token = PodPageToken(pod);
  const Result<PodName> read = ParsePodPageToken(token);
  FUZZ_CHECK(read.ok() == (!pod.uid.empty() && token.size() <= kMaxPageToken));
  if (read.ok()) FUZZ_CHECK(*read == pod);
}

}  // namespace

FUZZ_TARGET(page_token)(const uint8_t* data, size_t size) {
  const std::string_view text = fuzz::TextOf(data, size);
  CheckToken(text);
  CheckName(text);
  return 0;
}

}  // namespace volumed::page_token_fuzz
