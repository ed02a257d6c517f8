import { CliError } from './cli_error.ts';
import { describeError } from './error_messages.ts';
import { stdoutFlushed } from './output.ts';
import { createProgram } from './program.ts';

/** Runs the command of the process's arguments, and ends the process. */
export async function runCommandLine(): Promise<never> {
  try {
    await createProgram().parseAsync();
    await stdoutFlushed();
    // Without an argument: a command may have set the exit code.
    return process.exit();
  } catch (error) {
    process.stderr.write(`exportd: ${describeError(error)}\n`);
    return process.exit(error instanceof CliError ? error.exitCode : 1);
  }
}
