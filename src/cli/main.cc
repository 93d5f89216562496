// volumectl: the command line of the agent's control API.
#include <iostream>

#include "cli/command_line.h"
#include "cli/plain_output.h"

int main(int argc, char** argv) {
  const volumed::PlainOutput plain_out(std::cout);
  const volumed::PlainOutput plain_err(std::cerr);
  return volumed::RunCommandLine(argc, argv);
}
