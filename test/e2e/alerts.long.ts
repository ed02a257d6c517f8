import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { hourAgo } from '../setup/hours.ts';
import { waitFor } from '../setup/wait_for.ts';
import { alertCases, faultCases, healthySeries } from './alert_cases.ts';
import { type MonitoredStack, ruleFile, rules, scrape, startMonitoredStack } from './monitored_stack.ts';
import { startOwnObjectStore, type OwnObjectStore } from './own_object_store.ts';
import { startPrometheus } from './prometheus.ts';
import { checkMetrics, checkRules, testExpressions } from './promtool.ts';
import { insertEvents } from './rows.ts';

// Among the long tests since no registry but Debian's has Prometheus and promtool.

function expressionOf(alert: string): string {
  const found = rules.find((rule) => rule.alert === alert);
  if (!found) throw new Error(`There is no alert ${alert}.`);
  return found.expr;
}

describe('the alert rules', () => {
  it('are accepted by promtool', async () => {
    expect(await checkRules(ruleFile)).toContain(`${rules.length} rules found`);
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

it('one alert rings for each fault, and none for what passes by itself', async () => {
  const output = await testExpressions(
    faultCases.map(({ fault, series, alerts }) => ({
      name: fault,
      expression: 'group by (alertname) (ALERTS{alertstate="firing"})',
      series: { ...healthySeries, ...series },
      expected: alerts.map((alert) => ({ labels: `{alertname="${alert}"}`, value: 1 })),
    })),
    ruleFile,
  );
  expect(output).toContain('SUCCESS');
});

describe('the metrics of a deployment', () => {
  let store: OwnObjectStore | undefined;
  let stack: MonitoredStack | undefined;
  beforeAll(async () => {
    store = await startOwnObjectStore();
    stack = await startMonitoredStack('alerts', { bucket: store.bucket });
    await insertEvents(stack.pool, stack.projectId, hourAgo(4), 300, 4 * 3_600);
  });
  afterAll(async () => {
    await stack?.stop();
    await store?.close();
  });

  it('have the form that Prometheus asks for', async () => {
    for (const url of [stack?.serverUrl, stack?.workerUrl])
      await expect(checkMetrics(await scrape(url ?? ''))).resolves.toBeDefined();
  });

  it('turn an alert true while the S3 server is dead, and false after it has returned', async () => {
    if (!stack || !store) throw new Error('The stack did not start.');
    const id = await stack.createExport();
    const prometheus = await startPrometheus([stack.serverUrl, stack.workerUrl], ruleFile);
    try {
      const isTrue = async (alert: string) => (await prometheus.query(expressionOf(alert))).length > 0;
      await waitFor(
        async () => (await prometheus.query('exportd_workers')).length > 0,
        'Prometheus has scraped',
      );
      expect(await isTrue('ExportdDestinationUnavailable')).toBe(false);
      expect(await isTrue('ExportdNoWorker')).toBe(false);
      await store.kill();
      await stack.call('POST', `/batch_exports/${id}/backfill/`, {
        start_at: hourAgo(3).toISOString(),
        end_at: hourAgo(2).toISOString(),
      });
      await waitFor(() => isTrue('ExportdDestinationUnavailable'), 'the alert is true');
      await waitFor(
        async () => (await prometheus.query('exportd_s3_requests_total{outcome="no_response"}')).length > 0,
        'the requests without a response are counted',
      );
      await store.start();
      await stack.waitForRun(id, (await stack.runs(id))[0]?.id ?? '', 'Completed');
      await waitFor(async () => !(await isTrue('ExportdDestinationUnavailable')), 'the alert is false');
    } finally {
      await prometheus.close();
    }
  });
});
