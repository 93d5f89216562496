#include "kube/static_pod.h"

#include <openssl/evp.h>

#include <array>
#include <cctype>
#include <string>

#include "kube/decode.h"

namespace volumed {
namespace {

// MD5 because it is the shape of kubelet's uid, 32 hex digits; nothing here needs it to be strong.
std::string Md5Hex(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_md5(), nullptr);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) {
    hex += kDigits[digest[i] >> 4];
    hex += kDigits[digest[i] & 15];
  }
  return hex;
}

}  // namespace

void ApplyStaticPodDefaults(const NodeName& node_name, std::string_view file, Pod& pod) {
  if (!pod.metadata.uid.empty()) return;
  const std::string json = EncodeObjectJson(Object(pod));
  // A separator that is in none of the parts keeps two different triples apart.
  std::string text = "host:" + node_name.str();
  text += '\0';
  text += "file:" + std::string(file);
  text += '\0';
  text += json;
  pod.metadata.uid = Md5Hex(text);
  pod.metadata.name += '-';
  for (const char c : node_name.str()) {
    pod.metadata.name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  pod.spec.node_name = node_name.str();
  pod.metadata.annotations[std::string(kConfigHashAnnotation)] = pod.metadata.uid;
  pod.metadata.annotations[std::string(kConfigSourceAnnotation)] = "file";
}

}  // namespace volumed
