#include "volumehost/local_token_issuer.h"

#include <gtest/gtest.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/manual_clock.h"
#include "base/strings.h"
#include "fakes/must.h"

namespace volumed {
namespace {

using nlohmann::json;
using std::chrono::hours;
using std::chrono::seconds;

std::string FromBase64Url(std::string text) {
  for (char& c : text) {
    if (c == '-') c = '+';
    if (c == '_') c = '/';
  }
  while (text.size() % 4 != 0) text += '=';
  return Base64Decode(text).value_or("not base64");
}

// A verifier of its own, that knows nothing but the key set: what a service would do.
bool VerifyWithJwks(const std::string& token, const json& jwks) {
  const auto parts = Split(token, '.');
  if (parts.size() != 3) return false;
  const json header = json::parse(FromBase64Url(parts[0]));
  const json& jwk = jwks.at("keys").at(0);
  if (header.at("alg") != "ES256" || header.at("kid") != jwk.at("kid")) return false;
  const std::string point = "\x04" + FromBase64Url(jwk.at("x")) + FromBase64Url(jwk.at("y"));

  OSSL_PARAM_BLD* builder = OSSL_PARAM_BLD_new();
  OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0);
  OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size());
  OSSL_PARAM* params = OSSL_PARAM_BLD_to_param(builder);
  EVP_PKEY_CTX* context = EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr);
  EVP_PKEY* key = nullptr;
  EVP_PKEY_fromdata_init(context);
  EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params);

  const std::string raw = FromBase64Url(parts[2]);
  ECDSA_SIG* signature = ECDSA_SIG_new();
  const auto* bytes = reinterpret_cast<const unsigned char*>(raw.data());
  bool good = raw.size() == 64;
  if (good) {
    ECDSA_SIG_set0(signature, BN_bin2bn(bytes, 32, nullptr), BN_bin2bn(bytes + 32, 32, nullptr));
    unsigned char* der = nullptr;
    const int der_size = i2d_ECDSA_SIG(signature, &der);
    const std::string signed_part = parts[0] + "." + parts[1];
    EVP_MD_CTX* digest = EVP_MD_CTX_new();
    good = EVP_DigestVerifyInit(digest, nullptr, EVP_sha256(), nullptr, key) == 1 &&
           EVP_DigestVerify(digest, der, static_cast<size_t>(der_size),
                            reinterpret_cast<const unsigned char*>(signed_part.data()),
                            signed_part.size()) == 1;
    EVP_MD_CTX_free(digest);
    OPENSSL_free(der);
  }
  ECDSA_SIG_free(signature);
  EVP_PKEY_free(key);
  EVP_PKEY_CTX_free(context);
  OSSL_PARAM_free(params);
  OSSL_PARAM_BLD_free(builder);
  return good;
}

class LocalTokenIssuerTest : public ::testing::Test {
 protected:
  LocalTokenIssuerTest() {
    char name[] = "/tmp/volumed-tokens-XXXXXX";
    scratch_ = ::mkdtemp(name);
    directory_ = scratch_ + "/tokens";
  }
  ~LocalTokenIssuerTest() override { std::filesystem::remove_all(scratch_); }

  std::unique_ptr<LocalTokenIssuer> Open() {
    return Must(LocalTokenIssuer::Open({.directory = directory_}, clock_));
  }
  std::string Get(LocalTokenIssuer& issuer, const TokenRequest& request) {
    const auto token = issuer.GetServiceAccountToken(request);
    EXPECT_TRUE(token.ok());
    return token.ok() ? token->token.Reveal() : "";
  }
  static json ClaimsOf(const std::string& token) {
    return json::parse(FromBase64Url(Split(token, '.').at(1)));
  }
  std::string ReadAll(const std::string& name) const {
    std::ifstream file(directory_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  mode_t ModeOf(const std::string& path) const {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }

  ManualClock clock_;
  std::string scratch_;
  std::string directory_;
  const TokenRequest request_{.ns = "shop",
                              .service_account = "web",
                              .audience = "vault",
                              .expiration_seconds = 3600,
                              .pod_name = "web-1",
                              .pod_uid = PodUid("u1")};
};

TEST_F(LocalTokenIssuerTest, ATokenIsVerifiedWithThePublishedKeySet) {
  auto issuer = Open();
  const std::string token = Get(*issuer, request_);
  const json jwks = json::parse(ReadAll("jwks.json"));
  EXPECT_EQ(jwks.dump(), issuer->jwks());
  EXPECT_TRUE(VerifyWithJwks(token, jwks));
}

// So that an agent starts on a disk that has no room left.
TEST_F(LocalTokenIssuerTest, AKeySetThatIsRightIsNotWrittenAgain) {
  Open();
  struct stat before {};
  struct stat after {};
  ASSERT_EQ(::stat((directory_ + "/jwks.json").c_str(), &before), 0);
  const std::string published = Open()->jwks();
  ASSERT_EQ(::stat((directory_ + "/jwks.json").c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  std::ofstream(directory_ + "/jwks.json") << "{}";
  Open();
  EXPECT_EQ(ReadAll("jwks.json"), published);
}

// The agent waited for a writer of it, at its start and for ever.
TEST_F(LocalTokenIssuerTest, AFifoInThePlaceOfAFileIsNotWaitedFor) {
  const std::string published = Open()->jwks();
  ASSERT_EQ(::unlink((directory_ + "/jwks.json").c_str()), 0);
  ASSERT_EQ(::mkfifo((directory_ + "/jwks.json").c_str(), 0644), 0);
  Open();
  EXPECT_EQ(ReadAll("jwks.json"), published);
  const std::string key = directory_ + "/signing-key.pem";
  ASSERT_EQ(::unlink(key.c_str()), 0);
  ASSERT_EQ(::mkfifo(key.c_str(), 0600), 0);
  const auto refused = LocalTokenIssuer::Open({.directory = directory_}, clock_);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("must be a file"), std::string::npos);
}

TEST_F(LocalTokenIssuerTest, AChangedTokenIsNotVerified) {
  auto issuer = Open();
  std::string token = Get(*issuer, request_);
  const size_t claims = token.find('.') + 1;
  token[claims + 5] = token[claims + 5] == 'A' ? 'B' : 'A';
  EXPECT_FALSE(VerifyWithJwks(token, json::parse(issuer->jwks())));
}

TEST_F(LocalTokenIssuerTest, TheKeySetHoldsNoPrivatePart) {
  const json jwk = json::parse(Open()->jwks()).at("keys").at(0);
  EXPECT_FALSE(jwk.contains("d"));
  EXPECT_EQ(jwk.at("kty"), "EC");
  EXPECT_EQ(jwk.at("crv"), "P-256");
}

TEST_F(LocalTokenIssuerTest, ClaimsNameThePodAndItsServiceAccount) {
  auto issuer = Open();
  const json claims = ClaimsOf(Get(*issuer, request_));
  const int64_t now = ManualClock::kStartUnixMillis / 1000;
  EXPECT_EQ(claims.at("iss"), "https://volumed.local");
  EXPECT_EQ(claims.at("sub"), "system:serviceaccount:shop:web");
  EXPECT_EQ(claims.at("aud"), json::array({"vault"}));
  EXPECT_EQ(claims.at("iat"), now);
  EXPECT_EQ(claims.at("nbf"), now);
  EXPECT_EQ(claims.at("exp"), now + 3600);
  EXPECT_EQ(claims.at("jti").get<std::string>().size(), 36u);
  const json& bound = claims.at("kubernetes.io");
  EXPECT_EQ(bound.at("namespace"), "shop");
  EXPECT_EQ(bound.at("pod").at("name"), "web-1");
  EXPECT_EQ(bound.at("pod").at("uid"), "u1");
  EXPECT_EQ(bound.at("serviceaccount").at("name"), "web");
}

TEST_F(LocalTokenIssuerTest, WithoutAnAudienceTheIssuerIsIt) {
  auto issuer = Open();
  TokenRequest request = request_;
  request.audience = "";
  EXPECT_EQ(ClaimsOf(Get(*issuer, request)).at("aud"), json::array({"https://volumed.local"}));
}

TEST_F(LocalTokenIssuerTest, ATokenIsKeptUntilEightyPercentOfItsLife) {
  auto issuer = Open();
  const std::string first = Get(*issuer, request_);
  clock_.Advance(seconds(3600 * 8 / 10 - 1));
  EXPECT_EQ(Get(*issuer, request_), first);
  clock_.Advance(seconds(1));
  EXPECT_NE(Get(*issuer, request_), first);
}

TEST_F(LocalTokenIssuerTest, ALongTokenIsReplacedAfterADay) {
  auto issuer = Open();
  TokenRequest request = request_;
  request.expiration_seconds = 30 * 24 * 3600;
  const auto token = issuer->GetServiceAccountToken(request);
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(token->refresh_unix_ms, ManualClock::kStartUnixMillis + 24 * 3600 * 1000);
  clock_.Advance(hours(24));
  EXPECT_NE(Get(*issuer, request), token->token.Reveal());
}

// One that was less than a day from the future was handed out for as long, and nobody took it.
TEST_F(LocalTokenIssuerTest, ATokenFromTheFutureIsRenewedAtOnce) {
  for (const int64_t back_ms : {int64_t{48} * 3600 * 1000, int64_t{60'000}, int64_t{1000}}) {
    auto issuer = Open();
    const std::string first = Get(*issuer, request_);
    EXPECT_EQ(Get(*issuer, request_), first);
    clock_.ShiftWallMillis(-back_ms);
    const std::string second = Get(*issuer, request_);
    EXPECT_NE(second, first) << back_ms;
    EXPECT_LE(ClaimsOf(second).at("nbf").get<int64_t>() * 1000, clock_.WallUnixMillis());
    EXPECT_EQ(Get(*issuer, request_), second);
  }
}

TEST_F(LocalTokenIssuerTest, EveryDifferenceInTheRequestIsAnotherToken) {
  auto issuer = Open();
  const std::string first = Get(*issuer, request_);
  std::vector<TokenRequest> others(6, request_);
  others[0].ns = "other";
  others[1].service_account = "other";
  others[2].audience = "other";
  others[3].expiration_seconds = 7200;
  others[4].pod_name = "other";
  others[5].pod_uid = PodUid("other");
  for (const TokenRequest& other : others) EXPECT_NE(Get(*issuer, other), first);
  EXPECT_EQ(Get(*issuer, request_), first);
}

TEST_F(LocalTokenIssuerTest, ForgetsTheTokensOfOnePodOnly) {
  auto issuer = Open();
  TokenRequest other = request_;
  other.pod_uid = PodUid("u2");
  const std::string of_first = Get(*issuer, request_);
  const std::string of_other = Get(*issuer, other);
  issuer->DeleteServiceAccountTokens(PodUid("u1"));
  EXPECT_NE(Get(*issuer, request_), of_first);
  EXPECT_EQ(Get(*issuer, other), of_other);
}

TEST_F(LocalTokenIssuerTest, RefusesLifetimesThatKubernetesRefuses) {
  auto issuer = Open();
  for (const int64_t lifetime : {int64_t{-1}, int64_t{0}, int64_t{599}, (int64_t{1} << 32) + 1}) {
    TokenRequest request = request_;
    request.expiration_seconds = lifetime;
    const auto token = issuer->GetServiceAccountToken(request);
    ASSERT_FALSE(token.ok()) << lifetime;
    EXPECT_EQ(token.error().code(), Code::kInvalidArgument);
  }
}

TEST_F(LocalTokenIssuerTest, OnlyTheAgentReadsTheKeyAndEverybodyTheKeySet) {
  Open();
  EXPECT_EQ(ModeOf(directory_), 0700u);
  EXPECT_EQ(ModeOf(directory_ + "/signing-key.pem"), 0600u);
  EXPECT_EQ(ModeOf(directory_ + "/jwks.json"), 0644u);
}

TEST_F(LocalTokenIssuerTest, TheKeyOutlivesTheAgent) {
  const std::string first = Open()->jwks();
  const std::string token = Get(*Open(), request_);
  EXPECT_EQ(Open()->jwks(), first);
  EXPECT_TRUE(VerifyWithJwks(token, json::parse(first)));
}

TEST_F(LocalTokenIssuerTest, ABrokenKeyIsReportedAndNeverReplaced) {
  Open();
  const std::string path = directory_ + "/signing-key.pem";
  std::ofstream(path) << "-----BEGIN PRIVATE KEY-----\nrubbish\n-----END PRIVATE KEY-----\n";
  const auto issuer = LocalTokenIssuer::Open({.directory = directory_}, clock_);
  ASSERT_FALSE(issuer.ok());
  EXPECT_EQ(issuer.error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(issuer.error().message(), path + ": not a P-256 private key in PEM form");
  EXPECT_NE(ReadAll("signing-key.pem").find("rubbish"), std::string::npos);
}

TEST_F(LocalTokenIssuerTest, AKeyThatOthersCanReadIsRefused) {
  Open();
  ASSERT_EQ(::chmod((directory_ + "/signing-key.pem").c_str(), 0640), 0);
  const auto issuer = LocalTokenIssuer::Open({.directory = directory_}, clock_);
  ASSERT_FALSE(issuer.ok());
  EXPECT_EQ(issuer.error().code(), Code::kFailedPrecondition);
}

TEST_F(LocalTokenIssuerTest, AKeyBehindALinkIsRefused) {
  Open();
  const std::string path = directory_ + "/signing-key.pem";
  std::filesystem::rename(path, scratch_ + "/elsewhere");
  std::filesystem::create_symlink(scratch_ + "/elsewhere", path);
  EXPECT_FALSE(LocalTokenIssuer::Open({.directory = directory_}, clock_).ok());
}

TEST_F(LocalTokenIssuerTest, AMissingParentIsAnError) {
  const auto issuer = LocalTokenIssuer::Open({.directory = scratch_ + "/no/where"}, clock_);
  ASSERT_FALSE(issuer.ok());
  EXPECT_EQ(issuer.error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace volumed
