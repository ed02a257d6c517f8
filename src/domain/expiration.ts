/** When a lifecycle rule of the bucket deletes what an export wrote. */
import { dayMs } from './intervals.ts';

/** An object of the bucket, as far as its expiration needs it. Times are ISO 8601. */
interface ExpiringObject {
  /** When a lifecycle rule deletes it, as the server said when it was written; null without a rule. */
  readonly expires_at: string | null;
  readonly written_at: string;
}

/**
 * When the bucket may have deleted an object: by the rule that was in force when it was written, or by one added later,
 * of which only `retention_days` of the export tells. Null if never.
 */
export function expirationOf(
  { expires_at, written_at }: ExpiringObject,
  retentionDays: number | null,
): Date | null {
  const times = [
    ...(expires_at === null ? [] : [Date.parse(expires_at)]),
    ...(retentionDays === null ? [] : [Date.parse(written_at) + retentionDays * dayMs]),
  ];
  return times.length === 0 ? null : new Date(Math.min(...times));
}

/** Whether the bucket may have deleted an object by now. What is expired is never exported again automatically. */
export function isExpired(object: ExpiringObject, retentionDays: number | null, now: Date): boolean {
  const expiration = expirationOf(object, retentionDays);
  return expiration !== null && expiration <= now;
}
