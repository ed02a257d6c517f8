#!/usr/bin/env node
import { exitOnSignals } from './startup_signals.ts';

exitOnSignals();
// Imports of a module are loaded before its first statement, so the rest is imported here.
const { runCommandLine } = await import('./run_command_line.ts');
await runCommandLine();
