import {
  previewOf,
  rejectSelectionForModel,
  requireDestinationType,
  type DestinationPreview,
} from '../../destination/config.ts';
import type { Pool } from '../../journal/database.ts';
import type { RowSelection } from '../../source/row_selection.ts';
import { defaultDefinition, definitionFrom, type WritableDefinition } from '../batch_export_definition.ts';
import { rejectTypeChange } from '../destination_config.ts';
import { requireBatchExport, type BatchExportRow } from '../read_models/batch_exports.ts';
import { rowQueryOf } from '../row_query.ts';
import type { UpdateBody } from '../schemas/batch_export.ts';

/** An export as a body would create or change it, which need not be complete. */
export interface PreviewedExport {
  readonly team_id: number;
  /** Null for an export that does not exist yet. */
  readonly id: string | null;
  readonly definition: WritableDefinition;
  readonly destination: DestinationPreview;
  readonly selection: RowSelection;
}

/**
 * Reads what a body would make of an export, or of a new one.
 * @throws CommandRejected or ApiError with the invalid field; ApiError 404
 */
export async function previewedExport(
  pool: Pool,
  teamId: number,
  id: string | null,
  body: UpdateBody,
): Promise<PreviewedExport> {
  const current = id === null ? null : await requireBatchExport(pool, teamId, id);
  if (current) rejectTypeChange(current, body.destination?.type);
  const definition = definitionFrom(current ?? { ...defaultDefinition, name: '' }, body);
  const type = body.destination?.type;
  if (type !== undefined) requireDestinationType(type);
  const config = { ...current?.config, ...body.destination?.config };
  const destination = previewOf(config);
  rejectSelectionForModel(destination.selection, definition.model);
  const { include_events, exclude_events, filters } = destination.selection;
  const selected = { include_events, exclude_events, filters };
  const query = hasQueryOf(current, definition)
    ? current.row_query
    : await rowQueryOf(pool, teamId, definition);
  return { team_id: teamId, id, definition, destination, selection: { ...selected, query } };
}

/** Whether the definition has the stored query, which keeps the time zone that it was stored with. */
const hasQueryOf = (
  current: BatchExportRow | null,
  { model, dialect_query }: WritableDefinition,
): current is BatchExportRow => current?.model === model && current.dialect_query === dialect_query;
