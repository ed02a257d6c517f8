import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readSettings, SettingsError } from '../../src/config/settings.ts';
import { workflowIds } from '../../src/contract/workflow_ids.ts';
import { createExecutionLists } from '../../src/temporal/clients/executions.ts';
import { loadPayloadCodecs } from '../../src/temporal/payload_codecs.ts';
import { createSignalRecovery } from '../../src/temporal/reconcilers/signal_recovery.ts';
import { waitFor } from '../setup/wait_for.ts';
import { createControlPlaneHarness, type ControlPlaneHarness } from './control_plane_harness.ts';
import { readCommands } from '../journal/read_commands.ts';

const codecModule = join(import.meta.dirname, 'reversing_codec.mjs');

let harness: ControlPlaneHarness;
beforeAll(async () => {
  harness = await createControlPlaneHarness({ EXPORTD_PAYLOAD_CODEC_MODULE: codecModule });
  await harness.startWorker();
});
afterAll(() => harness.close());

describe('payload codecs of the operator', () => {
  it('encode what Temporal stores of a run, from its start to its end', async () => {
    const id = await harness.createExportWithRun();
    const run = await harness.waitForRun(id, 'Completed');
    const handle = harness.client.workflow.getHandle(workflowIds(harness.settings).run(run));
    const { events } = await handle.fetchHistory();
    const started = events?.[0]?.workflowExecutionStartedEventAttributes;
    const results = (events ?? []).flatMap(({ markerRecordedEventAttributes: marker }) =>
      marker?.markerName === 'core_local_activity' ? [marker.details?.result?.payloads?.[0]] : [],
    );
    const payloads = [
      started?.input?.payloads?.[0],
      started?.memo?.fields?.run_id,
      events?.[0]?.userMetadata?.summary,
      events?.[0]?.userMetadata?.details,
      ...results,
    ];
    expect(payloads.map((payload) => Buffer.from(payload?.metadata?.encoding ?? []).toString())).toEqual(
      payloads.map(() => 'binary/reversed'),
    );
    expect(results.length).toBeGreaterThan(0);
    expect((await handle.describe()).memo).toEqual({ run_id: run.id });
  });

  it('decode the manual signals of a terminated schedule', async () => {
    const { client, journal, pool, settings } = harness;
    const id = await harness.createExport();
    await harness.stopWorker();
    const schedule = client.workflow.getHandle(workflowIds(settings).schedule(id));
    await schedule.signal('pause', {});
    await schedule.terminate('manually');
    const recovery = createSignalRecovery(client, createExecutionLists(client, settings), journal, {
      allowsManualSignals: true,
    });
    await waitFor(async () => {
      for (const ended of await recovery.endedSchedules()) await recovery.recover(ended);
      return (await readCommands(pool, id)).some(({ name }) => name === 'pause');
    }, 'the signal is stored');
    await harness.startWorker();
  });
});

it.each([
  ['/nowhere/codec.mjs', 'cannot be loaded'],
  ['no-such-package', 'cannot be loaded'],
  [join(import.meta.dirname, 'fakes.ts'), 'must export `payloadCodecs`'],
])('the module %s is an error at the start', async (EXPORTD_PAYLOAD_CODEC_MODULE, message) => {
  const settings = readSettings({ DATABASE_URL: 'unused', EXPORTD_PAYLOAD_CODEC_MODULE });
  await expect(loadPayloadCodecs(settings)).rejects.toThrow(SettingsError);
  await expect(loadPayloadCodecs(settings)).rejects.toThrow(message);
});
