#!/usr/bin/env node
import { describeFailure } from './failures.ts';
import { createProgram } from './program.ts';

try {
  await createProgram().parseAsync();
  process.exit(0);
} catch (error) {
  process.stderr.write(`exportd: ${describeFailure(error)}\n`);
  process.exit(1);
}
