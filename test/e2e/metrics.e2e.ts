import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { hourAgo } from '../setup/hours.ts';
import { waitFor } from '../setup/wait_for.ts';
import { alertCases } from './alert_cases.ts';
import { type MonitoredStack, ruleFile, rules, scrape, startMonitoredStack } from './monitored_stack.ts';
import { insertEvents } from './rows.ts';

const read = (path: string): string => readFileSync(join(import.meta.dirname, '../..', path), 'utf8');

it('the alert rules have a case each', () => {
  expect(new Set(alertCases.map(({ alert }) => alert))).toEqual(new Set(rules.map(({ alert }) => alert)));
});

describe('the metrics of a deployment', () => {
  let stack: MonitoredStack;
  beforeAll(async () => {
    stack = await startMonitoredStack('metrics');
    await insertEvents(stack.pool, stack.projectId, hourAgo(4), 300, 4 * 3_600);
  });
  afterAll(() => stack.stop());

  it('are served with the health of both processes', async () => {
    for (const url of [stack.serverUrl, stack.workerUrl]) {
      expect((await fetch(`${url}/livez`)).status).toBe(200);
      await waitFor(async () => (await fetch(`${url}/readyz`)).ok, `${url}/readyz responds 200`);
    }
    expect(await (await fetch(`${stack.workerUrl}/readyz`)).json()).toMatchObject({
      polling: 'ok',
      source: 'ok',
    });
  });

  it('are made once a second at most, since requests need no key', async () => {
    for (const url of [stack.serverUrl, stack.workerUrl]) {
      const startedAt = performance.now();
      const texts = await Promise.all(Array.from({ length: 50 }, () => scrape(url)));
      expect(new Set(texts).size).toBeLessThanOrEqual(1 + (performance.now() - startedAt) / 1_000);
    }
  });

  it('count a run, and are all that rules, dashboard and README name', async () => {
    const id = await stack.createExport();
    await stack.call('POST', `/batch_exports/${id}/backfill/`, {
      start_at: hourAgo(4).toISOString(),
      end_at: hourAgo(3).toISOString(),
    });
    const [run] = await stack.runs(id);
    await stack.waitForRun(id, run?.id ?? '', 'Completed');
    const idle = 'exportd_activity_slots{queue="export",state="running"} 0\n';
    const published = 'exportd_stage_seconds_count{stage="publish"} 1\n';
    await waitFor(async () => {
      const text = await scrape(stack.workerUrl);
      return text.includes(published) && text.includes(idle);
    }, 'the metrics have the run, and the slots are free');
    const [server, worker] = [await scrape(stack.serverUrl), await scrape(stack.workerUrl)];
    for (const line of [
      'exportd_runs_total{status="Completed"} 1',
      'exportd_rows_total{model="events"} 75',
      'exportd_stage_seconds_count{stage="publish"} 1',
    ])
      expect(worker).toContain(`${line}\n`);
    expect(worker).toMatch(/^exportd_s3_requests_total\{operation="PutObject",outcome="ok"\} [1-9]/m);
    expect(worker).toMatch(/^temporal_/m);
    expect(server).toContain('exportd_workers{queue="control"} 1\n');
    expect(server).toContain('exportd_freshness_seconds');
    const used = `${readFileSync(ruleFile, 'utf8')}${read('.config/grafana_dashboard.json')}`;
    expect(namesIn(used).filter((name) => !isServed(name, server + worker))).toEqual([]);
    const described = read('src/telemetry/README.md');
    expect(ownNamesIn(server + worker).filter((name) => !described.includes(`\`${name}\``))).toEqual([]);
  });
});

/** The names of exportd's and Temporal's metrics in a text. */
const namesIn = (content: string): string[] => [
  ...new Set(content.match(/\b(exportd|temporal)_[a-z0-9_]+\b/g)),
];

/** The metrics of exportd in a scrape, without the suffixes of histograms. */
const ownNamesIn = (scraped: string): string[] =>
  [...scraped.matchAll(/^# TYPE (exportd_\w+) /gm)].map(([, name = '']) => name);

/** Whether a scrape has a metric: by its own name, or by that of a histogram's series. */
const isServed = (name: string, scraped: string): boolean =>
  [name, name.replace(/_(bucket|sum|count)$/, '')].some((one) => scraped.includes(`# TYPE ${one} `));
