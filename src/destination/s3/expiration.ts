/**
 * When a lifecycle rule of the bucket deletes an object, from the response header `x-amz-expiration`:
 * `expiry-date="Fri, 21 Dec 2029 00:00:00 GMT", rule-id="…"`. ISO 8601; null without a rule.
 */
export function parseExpiration(header: string | undefined): string | null {
  const [, date] = /expiry-date="([^"]+)"/.exec(header ?? '') ?? [];
  const time = Date.parse(date ?? '');
  return Number.isNaN(time) ? null : new Date(time).toISOString();
}
