#!/usr/bin/env node
import { CliError } from './cli_error.ts';
import { describeFailure } from './failures.ts';
import { printed } from './output.ts';
import { createProgram } from './program.ts';

try {
  await createProgram().parseAsync();
  await printed();
  // Sets no code: a command may have set one that means something.
  process.exit();
} catch (error) {
  process.stderr.write(`exportd: ${describeFailure(error)}\n`);
  process.exit(error instanceof CliError ? error.exitCode : 1);
}
