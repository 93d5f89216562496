// csi_fake_driver_program OPTIONS CONTROL: a fake CSI driver as a process. OPTIONS is a file with
// the JSON of CsiFakeOptions; at the socket CONTROL it takes one command for each connection, a
// line of JSON, and answers with a line (CsiFakeDriver::Tell()). It ends with the process that
// started it.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "fakes/csi_fake_driver.h"
#include "unit/csi/scripted_driver.h"

namespace volumed {
namespace {

std::string ReadLine(int connection) {
  std::string line;
  for (char c = 0; ::read(connection, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

void Serve(CsiFakeDriver& driver, int connection) {
  const std::string command = ReadLine(connection);
  if (command.empty()) return;
  const std::string answer = driver.Tell(command) + "\n";
  if (::write(connection, answer.data(), answer.size()) < 0) return;
}

int Run(const std::string& options_path, const std::string& control) {
  std::stringstream text;
  text << std::ifstream(options_path).rdbuf();
  CsiFakeDriver driver(ParseCsiFakeOptions(text.str()), [] { ::raise(SIGKILL); });
  const RawServer server(control, [&driver](int connection) { Serve(driver, connection); });
  for (;;) ::pause();
}

}  // namespace
}  // namespace volumed

int main(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGPIPE, SIG_IGN);
  if (argc != 3) {
    (void)std::fprintf(stderr, "usage: %s OPTIONS CONTROL\n", argv[0]);
    return 2;
  }
  return volumed::Run(argv[1], argv[2]);
}
