import { Counter, Histogram, type Registry } from 'prom-client';
import { observeS3Requests } from '../../destination/request_events.ts';

/** Seconds, from a HEAD to a part on a slow line. */
const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** Registers the requests of this process to S3 servers. @returns a function that stops counting */
export function registerS3Metrics(metrics: Registry): () => void {
  const requests = new Counter({
    name: 'exportd_s3_requests_total',
    help: 'Requests to S3 servers by operation and outcome. A request that the SDK repeats counts each time.',
    labelNames: ['operation', 'outcome'],
    registers: [metrics],
  });
  const duration = new Histogram({
    name: 'exportd_s3_request_duration_seconds',
    help: 'Duration of requests to S3 servers, failed ones included.',
    labelNames: ['operation'],
    buckets,
    registers: [metrics],
  });
  return observeS3Requests(({ operation, outcome, seconds }) => {
    requests.inc({ operation, outcome });
    duration.observe({ operation }, seconds);
  });
}
