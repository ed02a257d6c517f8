import type { Command } from 'commander';
import type { BatchExportUpdateInput } from '../../client/client.ts';
import { parseJsonObject } from '../arguments.ts';
import { CliError } from '../cli_error.ts';
import { asWritten, type JsonObject, serviceCommand, type ServiceCommandOptions } from '../service_client.ts';

export type DraftOptions = ServiceCommandOptions & { readonly id?: string };

/** A command about a batch export that is not saved. */
export const addDraftCommand = (exports: Command, name: string, description: string): Command =>
  serviceCommand(exports, name, description)
    .argument(
      '[JSON]',
      'fields of a new export, or with --id the changes of an existing one',
      parseJsonObject,
    )
    .option('--id <id>', 'the batch export that the fields change');

/** Its fields. */
export function draftOf(fields: JsonObject | undefined, { id }: DraftOptions): BatchExportUpdateInput {
  if (fields === undefined && id === undefined)
    throw new CliError('Name the batch export with --id, or pass the fields of a new one as JSON.');
  return asWritten(fields ?? {});
}
