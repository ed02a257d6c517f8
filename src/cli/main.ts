#!/usr/bin/env node
import { CliError } from './cli_error.ts';
import { describeError } from './error_messages.ts';
import { stdoutFlushed } from './output.ts';
import { createProgram } from './program.ts';

try {
  await createProgram().parseAsync();
  await stdoutFlushed();
  // Without an argument: a command may have set the exit code.
  process.exit();
} catch (error) {
  process.stderr.write(`exportd: ${describeError(error)}\n`);
  process.exit(error instanceof CliError ? error.exitCode : 1);
}
