import { invalid } from '../api_error.ts';

/** Where a page of intervals starts: after this interval in the list's order, or before it when `backwards`. */
interface IntervalCursor {
  readonly start: string;
  readonly backwards: boolean;
}

/** Encodes a cursor. The intervals of an export do not overlap, so their start identifies them. */
export const encodeIntervalCursor = (start: string, backwards: boolean): string =>
  Buffer.from(JSON.stringify([start, backwards])).toString('base64url');

/** Decodes a cursor. @throws ApiError 400 */
export function decodeIntervalCursor(text: string): IntervalCursor {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
    if (Array.isArray(parsed) && parsed.length === 2) {
      const [start, backwards] = parsed as unknown[];
      if (typeof start === 'string' && !Number.isNaN(Date.parse(start)) && typeof backwards === 'boolean')
        return { start: new Date(start).toISOString(), backwards };
    }
  } catch {
    // Not a cursor of this API; rejected below.
  }
  throw invalid(
    'Invalid cursor. Follow the `next` and `previous` URLs of a page instead of building one.',
    'cursor',
  );
}
