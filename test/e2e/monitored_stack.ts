import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { assignPorts } from '../../src/local_stack/ports.ts';
import type { TestBucket } from '../setup/bucket.ts';
import { fromSetUp } from '../setup/environment.ts';
import { startStack, type Stack } from './stack.ts';

/** The rules of alerts that operators load into Prometheus. */
export const ruleFile = join(import.meta.dirname, '../../.config/prometheus_rules.yaml');

const { groups } = parse(readFileSync(ruleFile, 'utf8')) as {
  groups: readonly { rules: readonly { alert: string; expr: string }[] }[];
};
export const rules = groups.flatMap((group) => group.rules);

/** A stack whose processes serve their health and metrics. */
export interface MonitoredStack extends Stack {
  readonly serverUrl: string;
  readonly workerUrl: string;
}

/** Starts it, with short waits for an S3 server that does not respond. */
export async function startMonitoredStack(
  name: string,
  { settings, ...options }: { readonly bucket?: TestBucket; readonly settings?: Record<string, string> } = {},
): Promise<MonitoredStack> {
  const ports = await assignPorts(join(fromSetUp('EXPORTD_TEST_FOLDER'), `${randomUUID()}.ports.json`), [
    'server',
    'worker',
  ]);
  const stack = await startStack(
    name,
    {
      EXPORTD_MONITORING_PORT: String(ports.server),
      EXPORTD_WORKER_HTTP_PORT: String(ports.worker),
      EXPORTD_S3_RETRY_BUDGET: '500ms',
      EXPORTD_S3_PROBE_AFTER: '100ms',
      EXPORTD_S3_PROBE_INITIAL: '200ms',
      EXPORTD_S3_PROBE_MAX: '500ms',
      ...settings,
    },
    options,
  );
  const [serverUrl, workerUrl] = [ports.server, ports.worker].map((port) => `http://127.0.0.1:${port}`) as [
    string,
    string,
  ];
  return { ...stack, serverUrl, workerUrl };
}

/** The metrics that a process serves. @throws Error for another status than 200 */
export async function scrape(url: string): Promise<string> {
  // The server may close an idle connection while a request is on its way.
  const response = await fetch(`${url}/metrics`, { headers: { connection: 'close' } });
  if (response.status !== 200) throw new Error(`${url}/metrics responds ${String(response.status)}.`);
  return response.text();
}
