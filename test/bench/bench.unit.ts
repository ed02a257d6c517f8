import { describe, expect, it } from '@jest/globals';
import pino from 'pino';
import { sharedMetrics, startMonitoringServer } from '../../src/telemetry/monitoring_server.ts';
import { pairedRatios, throughputOf } from './exports/exports_bench.ts';
import { cpuSecondsIn } from './exports/programs.ts';
import { medianOf, percentileOf, statisticsOf } from './results.ts';
import { requestsIn, s3RequestsOf } from './usage.ts';

const of = (...seconds: number[]) => seconds.map((value) => ({ seconds: value, cpu_seconds: value / 2 }));

describe('statistics of repeated measurements', () => {
  it('have a median', () => {
    expect(medianOf([3, 1, 2])).toBe(2);
    expect(medianOf([4, 1, 2, 3])).toBe(2.5);
    expect(() => medianOf([])).toThrow(RangeError);
  });

  it('have percentiles', () => {
    const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect(percentileOf(hundred, 0.5)).toBe(50);
    expect(percentileOf(hundred, 0.95)).toBe(95);
    expect(percentileOf([7], 0.95)).toBe(7);
    expect(() => percentileOf([], 0.5)).toThrow(RangeError);
  });

  it('keep the order of the repeats', () => {
    expect(statisticsOf([3, 1.23456, 2])).toEqual({ minimum: 1.235, median: 2, all: [3, 1.235, 2] });
  });

  it('compare measurements of the same repeat', () => {
    // The second repeat was slow as a whole.
    expect(pairedRatios(of(6, 30, 6.6), of(2, 10, 2))).toEqual({ minimum: 3, median: 3, all: [3, 3, 3.3] });
  });

  it('have rates from the median', () => {
    expect(throughputOf(of(4, 2, 3), { events: 600, copy_bytes: 3e6 })).toMatchObject({
      rows_per_second: 200,
      megabytes_per_second: 1,
      cpu_seconds: { median: 1.5 },
    });
  });
});

describe('the times of a shell', () => {
  it('include user and system time of its children', () => {
    expect(cpuSecondsIn('0m0.010s 0m0.020s\n1m2.500s 0m0.250s\n')).toBeCloseTo(62.78, 6);
  });
});

describe('requests in the metrics of a worker', () => {
  it('are summed over operations and outcomes', () => {
    const metrics = `# TYPE exportd_s3_requests_total counter
exportd_s3_requests_total{operation="UploadPart",outcome="ok"} 12
exportd_s3_requests_total{operation="PutObject",outcome="conflict"} 1
exportd_s3_request_duration_seconds_count{operation="UploadPart"} 12`;
    expect(requestsIn(metrics)).toBe(13);
  });

  it('include those of the last second', async () => {
    let requests = 3;
    const monitor = {
      readiness: () => Promise.resolve({ isReady: true, body: {} }),
      metrics: sharedMetrics(() => Promise.resolve(`exportd_s3_requests_total ${String(requests)}\n`)),
    };
    const settings = { host: 'EXPORTD_WORKER_HTTP_HOST', port: 'EXPORTD_WORKER_HTTP_PORT' };
    const server = await startMonitoringServer(
      { host: '127.0.0.1', port: 0, settings },
      monitor,
      pino({ level: 'silent' }),
    );
    try {
      const port = Number(new URL(server.url).port);
      expect(await s3RequestsOf(port)).toBe(3);
      requests += 2;
      expect(await s3RequestsOf(port)).toBe(5);
    } finally {
      await server.close();
    }
  });
});
