import { DateTime } from 'luxon';
import type { Logger } from '../../telemetry/logger.ts';
import { type EditorRequest, type EditorService, readForEditor } from '../editor.ts';
import { QueryError } from '../query_errors.ts';
import { draftByModel } from './draft_by_model.ts';
import { draftByRules, unclear } from './draft_by_rules.ts';
import { readVocabulary } from '../vocabulary.ts';

interface DraftRequest extends EditorRequest {
  readonly prompt: string | null;
  /** The query that the prompt refers to, if any. */
  readonly current_query: string | null;
}

const maxPromptLength = 400;
const attr = 'prompt';

/**
 * Drafts a dialect query for a prompt in plain English. The result compiles for the project.
 * @throws QueryError `required`, `too_long`, `unclear`; QuerySlotsBusy, QueryInterrupted, ClientDisconnected
 */
export async function draftSql(
  service: EditorService & { readonly logger: Logger },
  request: DraftRequest,
): Promise<string> {
  const prompt = request.prompt?.trim() ?? '';
  const current = request.current_query?.trim() ?? '';
  if (prompt === '') throw new QueryError('required', 'This field is required.', { attr });
  if (prompt.length > maxPromptLength)
    throw new QueryError('too_long', `A prompt can have at most ${maxPromptLength} characters.`, { attr });
  // Releases the connection and the slot before the model is called.
  const { schema, vocabulary } = await readForEditor(
    service,
    request,
    service.settings.EXPORTD_DRAFT_SQL_TIMEOUT,
    async (reader, project) => ({ schema: project, vocabulary: await readVocabulary(reader) }),
  );
  const today = DateTime.fromJSDate(schema.now, { zone: schema.project.timezone }).toISODate() ?? '';
  const input = { prompt, current_query: current === '' ? null : current, vocabulary, today };
  const check = async (query: string): Promise<string> => {
    // A draft converts properties itself: their values may be of any type.
    await service.executor.check({ query, infersTypes: false, ...schema });
    return query;
  };
  const drafted = await draftByModel(service, input, check);
  if (drafted !== null) return drafted;
  try {
    return await check(draftByRules(prompt, vocabulary));
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    if (error.code === 'unclear') throw error;
    throw unclear(`The drafted query does not fit the project's data: ${error.message}`);
  }
}
