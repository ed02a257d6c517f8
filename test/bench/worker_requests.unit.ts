import { describe, expect, it } from '@jest/globals';
import { requestsIn } from '../../src/bench/worker_requests.ts';

describe('requests in the metrics of a worker', () => {
  it('are summed over operations and outcomes', () => {
    const metrics = `# TYPE exportd_s3_requests_total counter
exportd_s3_requests_total{operation="UploadPart",outcome="ok"} 12
exportd_s3_requests_total{operation="PutObject",outcome="conflict"} 1
exportd_s3_request_duration_seconds_count{operation="UploadPart"} 12`;
    expect(requestsIn(metrics)).toBe(13);
  });
});
