import { DateTime } from 'luxon';
import type { Settings } from '../../config/settings.ts';
import type { Schema } from '../../dialect/schema.ts';
import type { Pool } from '../../journal/database.ts';
import { relationsOf } from '../../source/relations.ts';
import { SourceBusy, type SourceConnections } from '../../source/source_connection.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { openDialectReader } from '../dialect_reader.ts';
import { type QueryProject, readQueryProject } from '../query_kind.ts';
import { postgresConnection } from '../query_connection.ts';
import { QueryError, QueryNotStarted, toQueryError } from '../query_errors.ts';
import type { QueryExecutor } from '../query_executor.ts';
import { queryTransaction } from '../query_source.ts';
import type { RunningQueries } from '../run_query.ts';
import { draftByModel } from './draft_by_model.ts';
import { unclear } from './draft_by_rules.ts';
import { readVocabulary, type Vocabulary } from './vocabulary.ts';

/** A request for a draft. */
export interface DraftRequest {
  readonly team_id: number;
  readonly key_id: string;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
  readonly prompt: string | null;
  /** The query that the prompt refers to, if any. */
  readonly current_query: string | null;
}

/** The dependencies of drafting. */
export interface DraftService {
  readonly pool: Pool;
  readonly source: SourceConnections;
  readonly running: RunningQueries;
  readonly executor: QueryExecutor;
  readonly settings: Settings;
  readonly logger: Logger;
}

const maxPromptLength = 400;
const attr = 'prompt';

/**
 * Drafts a dialect query for a prompt in plain English. The result compiles for the project.
 * @throws QueryError `required`, `too_long`, `unclear`; QuerySlotsBusy, QueryInterrupted, ClientDisconnected
 */
export async function draftSql(service: DraftService, request: DraftRequest): Promise<string> {
  const prompt = request.prompt?.trim() ?? '';
  const current = request.current_query?.trim() ?? '';
  if (prompt === '') throw new QueryError('required', 'This field is required.', { attr });
  if (prompt.length > maxPromptLength)
    throw new QueryError('too_long', `A prompt can have at most ${maxPromptLength} characters.`, { attr });
  const { project, now, schema, vocabulary, today } = await readProject(service, request);
  const input = { prompt, current_query: current === '' ? null : current, vocabulary, today };
  const check = async (query: string): Promise<string> => {
    await service.executor.check({ query, project, now, schema });
    return query;
  };
  const drafted = await draftByModel(service, input, check);
  if (drafted !== null) return drafted;
  const sql = await service.executor.draft({ input, project });
  try {
    return await check(sql);
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    throw unclear(`The drafted query does not fit the project's data: ${error.message}`);
  }
}

interface ProjectContext {
  readonly project: QueryProject;
  readonly now: Date;
  readonly schema: Schema;
  readonly vocabulary: Vocabulary;
  /** The current date in the project's zone, as `2026-11-21`. */
  readonly today: string;
}

/** Reads what drafting needs from a project, then releases the connection and the slot. */
async function readProject(
  { pool, source, settings, running }: DraftService,
  request: DraftRequest,
): Promise<ProjectContext> {
  const { team_id } = request;
  const { project, now } = await readQueryProject(pool, team_id);
  const transaction = queryTransaction(settings.EXPORTD_DRAFT_SQL_TIMEOUT, team_id);
  try {
    return await running.run({ ...request, execution_id: null }, ({ signal, progress }) =>
      source.read(transaction, signal, async ({ connection }) => {
        const context = {
          connection: postgresConnection(connection),
          project,
          now,
          row_limit: settings.EXPORTD_QUERY_MAX_ROWS,
          byte_limit: settings.EXPORTD_QUERY_MAX_RESULT_SIZE,
          variables: {},
          progress,
        };
        const reader = await openDialectReader(context, relationsOf(settings));
        const today = DateTime.fromJSDate(now, { zone: project.timezone }).toISODate() ?? '';
        return { project, now, schema: reader.schema, vocabulary: await readVocabulary(reader), today };
      }),
    );
  } catch (error) {
    throw error instanceof SourceBusy ? new QueryNotStarted() : (toQueryError(error) ?? error);
  }
}
