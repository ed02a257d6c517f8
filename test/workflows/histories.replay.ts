import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import { Worker } from '@temporalio/worker';
import { createLogger } from '../../src/telemetry/logger.ts';
import { bundleWorkflows } from '../../src/temporal/worker/bundle.ts';
import { installRuntime } from '../../src/temporal/worker/worker_process.ts';
import { sharedBundle } from '../setup/shared_bundle.ts';

const folder = join(import.meta.dirname, '../histories');
const files = readdirSync(folder).filter((name) => name.endsWith('.json'));

describe('workflows', () => {
  it('replay every recorded history', async () => {
    const logger = createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' });
    installRuntime(logger);
    const histories = files.map((name) => ({
      workflowId: name,
      history: historyFromJSON(JSON.parse(readFileSync(join(folder, name), 'utf8'))),
    }));
    // A whole run has written one for its workers.
    const isWritten = process.env.EXPORTD_WORKFLOW_BUNDLE !== undefined;
    const workflowBundle = isWritten ? sharedBundle() : await bundleWorkflows();
    const options = { workflowBundle, replayName: 'histories' };
    const outcomes: string[] = [];
    for await (const { workflowId, error } of Worker.runReplayHistories(options, histories))
      outcomes.push(`${workflowId}: ${error?.message ?? 'replayed'}`);
    expect(outcomes.sort()).toEqual(files.map((name) => `${name}: replayed`).sort());
    expect(files.length).toBeGreaterThan(0);
  });
});
