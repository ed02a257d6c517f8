import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { fromSetUp } from '../setup/environment.ts';
import setUp from '../setup/start_servers.ts';
import tearDown from '../setup/stop_servers.ts';
import { temporalCommand } from '../setup/temporal_command.ts';
import { createControlPlaneHarness } from '../temporal/control_plane_harness.ts';
import { scenarios } from './scenarios/index.ts';

/**
 * Records the histories for the replay test: starts servers, plays the scenarios and writes what Temporal recorded.
 *
 *   npm run histories -- 0.2.0                 records the histories that version 0.2.0 lacks
 *   npm run histories -- 0.2.0 run- backfill-  records those with these prefixes
 *   npm run histories -- 0.2.0 --replace       records them again; only before the version is released
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { replace: { type: 'boolean', default: false } },
});
const [version, ...prefixes] = positionals;
if (version === undefined)
  throw new Error('Usage: npm run histories -- <version> [<prefix of a history> …] [--replace]');

const pathOf = (name: string): string => join(import.meta.dirname, `${name}-${version}.json`);

const isWanted = (name: string): boolean =>
  (prefixes.length === 0 || prefixes.some((prefix) => name.startsWith(prefix))) &&
  (values.replace || !existsSync(pathOf(name)));

/** The SDK's own conversion to JSON fails in 1.24.0, so that of Temporal's command line is used. */
async function write(name: string, workflowId: string, runId: string | undefined): Promise<void> {
  const address = fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS');
  const execution = ['--workflow-id', workflowId, ...(runId === undefined ? [] : ['--run-id', runId])];
  const history = execFileSync(
    await temporalCommand(),
    ['workflow', 'show', '--output', 'json', '--address', address, ...execution],
    { maxBuffer: 64 * 1024 * 1024 },
  );
  writeFileSync(pathOf(name), history);
  process.stdout.write(`recorded ${name}-${version}\n`);
}

const wanted = scenarios.filter(({ histories }) => histories.some(isWanted));
await setUp();
try {
  for (const { histories, settings, queryKinds, play } of wanted) {
    const stack = await createControlPlaneHarness(settings?.(), undefined, queryKinds);
    const recorded = new Set<string>();
    try {
      await stack.startWorker();
      await play(stack, async (name, workflowId, runId) => {
        recorded.add(name);
        if (isWanted(name)) await write(name, workflowId, runId);
      });
    } finally {
      await stack.close();
    }
    const missing = histories.filter((name) => !recorded.has(name));
    if (missing.length > 0) throw new Error(`A scenario did not record ${missing.join(', ')}.`);
  }
} finally {
  await tearDown();
}
process.exit();
