import { type FakeServer, startFakeServer } from '../../destination/fake_server.ts';

/** Fields of an export as PostHog's API returns them. */
export type RecordedExport = Readonly<Record<string, unknown>>;

export const team = 7;
export const posthogKey = 'phx_aKeyThatNobodyMayRead';

let ids = 0;

/** An export as PostHog's newest API returns it; `more` replaces fields. */
export const recorded = (more: RecordedExport = {}): RecordedExport => ({
  id: `0190a4d2-0000-0000-0000-${String((ids += 1)).padStart(12, '0')}`,
  team_id: team,
  name: 'Events by the hour',
  model: 'events',
  interval: 'hour',
  timezone: 'UTC',
  offset_day: null,
  offset_hour: null,
  paused: false,
  created_at: '2026-01-12T09:14:03.551021Z',
  last_updated_at: '2026-03-02T16:40:11.004118Z',
  last_paused_at: null,
  start_at: null,
  end_at: null,
  latest_runs: [],
  schema: null,
  filters: null,
  hogql_query: null,
  hogql_modifiers: null,
  primary_key: null,
  version_key: null,
  incremental_mode: null,
  destination: destination(),
  ...more,
});

/** A destination with a config as an older version returned it: with its endpoint, and without its keys. */
export const destination = (config: RecordedExport = {}, type = 'S3', integration: number | null = null) => ({
  type,
  integration,
  config: {
    bucket_name: 'analytics-exports',
    region: 'eu-central-1',
    prefix: 'events',
    file_format: 'JSONLines',
    compression: null,
    encryption: null,
    kms_key_id: null,
    endpoint_url: null,
    max_file_size_mb: null,
    use_virtual_style_addressing: false,
    include_events: [],
    exclude_events: [],
    ...config,
  },
});

/** A run of a schedule. */
export const recordedRun = (start: string, end: string, status = 'Completed'): RecordedExport => ({
  id: '0190a4d2-1111-0000-0000-000000000001',
  status,
  records_completed: 12,
  latest_error: null,
  data_interval_start: start,
  data_interval_end: end,
  backfill: null,
  created_at: end,
  finished_at: end,
});

/**
 * PostHog's list of batch exports, in pages of two at most. As behind a proxy, it knows itself by another name.
 * Without the key it responds with 401.
 */
export const startRecordedServer = (exports: readonly RecordedExport[]): Promise<FakeServer> =>
  startFakeServer(({ method, path, headers }, response) => {
    const { pathname, searchParams } = new URL(path, 'http://posthog.test');
    const respond = (status: number, body: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (headers.authorization !== `Bearer ${posthogKey}`)
      respond(401, { type: 'authentication_error', code: 'authentication_failed', detail: 'Invalid key.' });
    else if (method !== 'GET' || pathname !== `/api/projects/${team}/batch_exports/`)
      respond(404, { type: 'invalid_request', code: 'not_found', detail: 'Not found.', attr: null });
    else {
      const offset = Number(searchParams.get('offset') ?? 0);
      const results = exports.slice(offset, offset + 2);
      const next = offset + 2;
      respond(200, {
        count: exports.length,
        next: next < exports.length ? `http://posthog.internal:8000${pathname}?limit=2&offset=${next}` : null,
        previous: null,
        results,
      });
    }
  });

/** The comments of a printed file as one text, each unfolded to a line. */
export const commentsIn = (text: string): string =>
  text
    .split('\n')
    .filter((line) => /^\s*#/.test(line))
    .map((line) => line.replace(/^\s*# ?/, ''))
    .join('\n')
    .replaceAll(/\n {2}/g, ' ');
