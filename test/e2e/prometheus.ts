import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { assignPorts } from '../../src/local_stack/ports.ts';
import { programPath } from '../setup/programs.ts';
import { waitFor } from '../setup/wait_for.ts';

/** A Prometheus server that scrapes every second. */
export interface Prometheus {
  /** The values of an instant query, one for each series. */
  query(expression: string): Promise<number[]>;
  /** The names of the alerts that are pending or fire. */
  alerts(): Promise<string[]>;
  close(): Promise<void>;
}

/** Starts Prometheus with a rule file. @param targets the URLs of processes that serve `/metrics` */
export async function startPrometheus(targets: readonly string[], ruleFile: string): Promise<Prometheus> {
  const program = await programPath('prometheus');
  const folder = mkdtempSync(join(tmpdir(), 'exportd-prometheus-'));
  const { prometheus: port } = await assignPorts(join(folder, 'ports.json'), ['prometheus']);
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [ruleFile],
    scrape_configs: [
      { job_name: 'exportd', static_configs: [{ targets: targets.map((url) => new URL(url).host) }] },
    ],
  };
  writeFileSync(join(folder, 'prometheus.yml'), stringify(config));
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(
    program,
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=error',
    ],
    { stdio: 'inherit' },
  );
  await waitFor(async () => {
    if (child.exitCode !== null) throw new Error(`Prometheus exited with ${child.exitCode}.`);
    return (await fetch(`${url}/-/ready`).catch(() => undefined))?.ok;
  }, 'Prometheus is ready');
  const query = async (expression: string) => {
    const response = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(expression)}`);
    const { data, error } = (await response.json()) as {
      data?: {
        result: readonly {
          metric: Readonly<Record<string, string>>;
          value: readonly [number, string];
        }[];
      };
      error?: string;
    };
    if (!data) throw new Error(`Prometheus rejects ${expression}: ${error ?? response.statusText}`);
    return data.result;
  };
  return {
    query: async (expression) => (await query(expression)).map(({ value: [, value] }) => Number(value)),
    alerts: async () =>
      (await query('group by (alertname) (ALERTS)')).map(({ metric }) => metric.alertname ?? '').toSorted(),
    close: async () => {
      const exited = once(child, 'exit');
      child.kill('SIGTERM');
      await exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
