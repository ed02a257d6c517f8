import type { Registry } from 'prom-client';
import type { Pool } from '../../journal/database.ts';
import { shareReading } from '../../telemetry/metrics.ts';
import { addGauge, maxAgeMs } from '../metrics.ts';

/** Registers how many messages to webhooks wait. Every server reports the same number. */
export function registerDeliveryMetrics(metrics: Registry, pool: Pool): void {
  const pending = shareReading(async () => {
    const { rows } = await pool.query<{ readonly count: number }>(
      `select count(*) as count from exportd.webhook_deliveries where status = 'pending'`,
    );
    return rows[0]?.count ?? 0;
  }, maxAgeMs);
  addGauge(
    metrics,
    'exportd_pending_deliveries',
    'Messages to webhooks that wait for their first or next attempt.',
    [],
    async () => {
      const count = await pending.read();
      return count === undefined ? [] : [{ labels: {}, value: count }];
    },
  );
}
