#include "kube/content_mark.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <variant>

#include "base/random.h"

namespace volumed {
namespace {

constexpr size_t kSaltBytes = 32;

std::string NewSalt() {
  std::string salt(kSaltBytes, '\0');
  RandomBytes(std::as_writable_bytes(std::span(salt)));
  return salt;
}

const std::string& TextOf(const std::string& value) { return value; }
const std::string& TextOf(const Secret<std::string>& value) { return value.Reveal(); }

// Each part behind its length, so that no two contents are one text.
void Append(std::string_view part, std::string& text) {
  text += std::to_string(part.size());
  text += ':';
  text += part;
}

template <typename Map>
std::string DigestOf(const Map& data, const std::string& salt) {
  size_t size = 0;
  for (const auto& [key, value] : data) size += key.size() + TextOf(value).size() + 48;
  std::string text;
  text.reserve(size);  // a text that grows would leave copies of it behind
  for (const auto& [key, value] : data) {
    Append(key, text);
    Append(TextOf(value), text);
  }
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  HMAC(EVP_sha256(), salt.data(), static_cast<int>(salt.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), nullptr);
  OPENSSL_cleanse(text.data(), text.size());
  return {digest.begin(), digest.end()};
}

}  // namespace

std::optional<ContentMark> MarkOf(const Object& object, const std::optional<ContentMark>& before) {
  ContentMark mark;
  const auto* secret = std::get_if<SecretObject>(&object);
  const auto* config_map = std::get_if<ConfigMapObject>(&object);
  if (secret == nullptr && config_map == nullptr) return std::nullopt;
  if (secret != nullptr) mark.secret_type = secret->type;
  mark.immutable = secret != nullptr ? secret->immutable : config_map->immutable;
  if (!mark.immutable) return mark;
  mark.salt = before && !before->salt.empty() ? before->salt : NewSalt();
  if (secret != nullptr) {
    mark.data_digest = DigestOf(secret->data, mark.salt);
  } else {
    mark.data_digest = DigestOf(config_map->data, mark.salt);
    mark.binary_digest = DigestOf(config_map->binary_data, mark.salt);
  }
  return mark;
}

std::vector<UpdateProblem> ValidateUpdate(const ContentMark& before, const Object& now) {
  // An object that has the same mark except where `now` differs, so that one check says it.
  const auto changed = [&](const auto& data, const std::string& digest) {
    return before.immutable && DigestOf(data, before.salt) != digest;
  };
  const auto without_content = [](auto object) {
    object.data.clear();
    return object;
  };
  if (const auto* secret = std::get_if<SecretObject>(&now)) {
    SecretObject known = without_content(*secret);
    SecretObject same = known;
    known.type = before.secret_type;
    known.immutable = before.immutable;
    if (changed(secret->data, before.data_digest)) same.data.emplace("changed", "");
    return ValidateUpdate(Object(known), Object(same), /*bound=*/false);
  }
  if (const auto* config_map = std::get_if<ConfigMapObject>(&now)) {
    ConfigMapObject known = without_content(*config_map);
    known.binary_data.clear();
    ConfigMapObject same = known;
    known.immutable = before.immutable;
    if (changed(config_map->data, before.data_digest)) same.data.emplace("changed", "");
    if (changed(config_map->binary_data, before.binary_digest)) {
      same.binary_data.emplace("changed", "");
    }
    return ValidateUpdate(Object(known), Object(same), /*bound=*/false);
  }
  return {};
}

}  // namespace volumed
