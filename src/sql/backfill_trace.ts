/**
 * The trace of the command that created a backfill, as a W3C `traceparent`; null without one.
 * @param backfillId an SQL expression
 */
export const backfillTraceParent = (backfillId: string): string => `
  (select command.trace_parent from exportd.journal_events created
   join exportd.commands command
     on command.id = case when created.cause like 'command:%' then substr(created.cause, 9)::uuid end
   where created.stream_type = 'backfill' and created.stream_id = ${backfillId} and created.stream_version = 1)`;
