import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { assignPorts } from '../../src/local_stack/ports.ts';
import { fromSetUp } from '../setup/environment.ts';
import { hourAgo } from '../setup/hours.ts';
import { waitFor } from '../setup/wait_for.ts';
import { alertCases, healthySeries } from './alert_cases.ts';
import { startOwnObjectStore, type OwnObjectStore } from './own_object_store.ts';
import { startPrometheus, type Prometheus } from './prometheus.ts';
import { checkMetrics, checkRules, testExpressions } from './promtool.ts';
import { insertEvents } from './rows.ts';
import { startStack, type Stack } from './stack.ts';

const root = join(import.meta.dirname, '../..');
const read = (...path: string[]): string => readFileSync(join(root, ...path), 'utf8');

const ruleFile = join(root, '.config/prometheus_rules.yaml');
const { groups } = parse(read('.config/prometheus_rules.yaml')) as {
  groups: readonly { rules: readonly { alert: string; expr: string }[] }[];
};
const rules = groups.flatMap((group) => group.rules);
const expressionOf = (alert: string): string => {
  const found = rules.find((rule) => rule.alert === alert);
  if (!found) throw new Error(`There is no alert ${alert}.`);
  return found.expr;
};

describe('the alert rules', () => {
  it('are accepted by promtool', async () => {
    expect(await checkRules(ruleFile)).toContain(`${rules.length} rules found`);
  });

  it('have a case each', () => {
    expect(new Set(alertCases.map(({ alert }) => alert))).toEqual(new Set(rules.map(({ alert }) => alert)));
  });

  it('are false in a healthy deployment, and true in their case', async () => {
    const output = await testExpressions([
      ...rules.map(({ alert, expr }) => ({
        name: `${alert} in a healthy deployment`,
        expression: expr,
        series: healthySeries,
        expected: [],
      })),
      ...alertCases.map(({ alert, when, series, result }) => ({
        name: `${alert} when ${when}`,
        expression: expressionOf(alert),
        series: { ...healthySeries, ...series },
        expected: [result],
      })),
    ]);
    expect(output).toContain('SUCCESS');
  });
});

describe('the metrics of a deployment', () => {
  let store: OwnObjectStore;
  let stack: Stack;
  let serverUrl: string;
  let workerUrl: string;
  beforeAll(async () => {
    store = await startOwnObjectStore();
    const ports = await assignPorts(join(fromSetUp('EXPORTD_TEST_FOLDER'), `${randomUUID()}.ports.json`), [
      'server',
      'worker',
    ]);
    serverUrl = `http://127.0.0.1:${ports.server}`;
    workerUrl = `http://127.0.0.1:${ports.worker}`;
    stack = await startStack(
      'metrics',
      {
        EXPORTD_MONITORING_PORT: String(ports.server),
        EXPORTD_WORKER_HTTP_PORT: String(ports.worker),
        EXPORTD_S3_RETRY_BUDGET: '500ms',
        EXPORTD_S3_PROBE_AFTER: '100ms',
        EXPORTD_S3_PROBE_INITIAL: '200ms',
        EXPORTD_S3_PROBE_MAX: '500ms',
      },
      { bucket: store.bucket },
    );
    await insertEvents(stack.pool, stack.projectId, hourAgo(4), 300, 4 * 3_600);
  });
  afterAll(async () => {
    await stack.stop();
    await store.close();
  });

  const scrape = async (url: string): Promise<string> => {
    // The server may close an idle connection while a request is on its way.
    const response = await fetch(`${url}/metrics`, { headers: { connection: 'close' } });
    expect(response.status).toBe(200);
    return response.text();
  };
  /** Starts a run of the hour that began so many hours ago. */
  const startRun = async (exportId: string, hours: number): Promise<string> => {
    await stack.call('POST', `/batch_exports/${exportId}/backfill/`, {
      start_at: hourAgo(hours).toISOString(),
      end_at: hourAgo(hours - 1).toISOString(),
    });
    return (await stack.runs(exportId))[0]?.id ?? '';
  };

  it('are served with the health of both processes', async () => {
    for (const url of [serverUrl, workerUrl]) {
      expect((await fetch(`${url}/livez`)).status).toBe(200);
      await waitFor(async () => (await fetch(`${url}/readyz`)).ok, `${url}/readyz responds 200`);
    }
    expect(await (await fetch(`${workerUrl}/readyz`)).json()).toMatchObject({ polling: 'ok', source: 'ok' });
  });

  it('are made once a second at most, since requests need no key', async () => {
    for (const url of [serverUrl, workerUrl]) {
      const startedAt = performance.now();
      const texts = await Promise.all(Array.from({ length: 50 }, () => scrape(url)));
      expect(new Set(texts).size).toBeLessThanOrEqual(1 + (performance.now() - startedAt) / 1_000);
    }
  });

  it('count a run, have the form that Prometheus asks for, and are all that rules and dashboard use', async () => {
    const id = await stack.createExport();
    await stack.waitForRun(id, await startRun(id, 4), 'Completed');
    const idle = 'exportd_activity_slots{queue="export",state="running"} 0\n';
    const published = 'exportd_stage_seconds_count{stage="publish"} 1\n';
    await waitFor(async () => {
      const text = await scrape(workerUrl);
      return text.includes(published) && text.includes(idle);
    }, 'the metrics have the run, and the slots are free');
    const [server, worker] = [await scrape(serverUrl), await scrape(workerUrl)];
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
    await checkMetrics(server);
    await checkMetrics(worker);
    const used = `${read('.config/prometheus_rules.yaml')}${read('.config/grafana_dashboard.json')}`;
    expect(namesIn(used).filter((name) => !isServed(name, server + worker))).toEqual([]);
    const described = read('src/telemetry/metrics/README.md');
    expect(ownNamesIn(server + worker).filter((name) => !described.includes(`\`${name}\``))).toEqual([]);
  });

  it('turn an alert true while the S3 server is dead, and false after it has returned', async () => {
    const id = await stack.createExport();
    const prometheus: Prometheus = await startPrometheus([serverUrl, workerUrl], ruleFile);
    try {
      const isTrue = async (alert: string) => (await prometheus.query(expressionOf(alert))).length > 0;
      await waitFor(
        async () => (await prometheus.query('exportd_workers')).length > 0,
        'Prometheus has scraped',
      );
      expect(await isTrue('ExportdDestinationUnavailable')).toBe(false);
      expect(await isTrue('ExportdNoWorker')).toBe(false);
      await store.kill();
      const run = await startRun(id, 3);
      await waitFor(() => isTrue('ExportdDestinationUnavailable'), 'the alert is true');
      await waitFor(
        async () => (await prometheus.query('exportd_s3_requests_total{outcome="no_response"}')).length > 0,
        'the requests without a response are counted',
      );
      await store.start();
      await stack.waitForRun(id, run, 'Completed');
      await waitFor(async () => !(await isTrue('ExportdDestinationUnavailable')), 'the alert is false');
    } finally {
      await prometheus.close();
    }
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
