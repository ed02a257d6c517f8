import { useSignal } from '@preact/signals';
import type { SavedQueryResponse } from '../../../http/query/saved_query_schema.ts';
import { api, type ActionRequest, type ListOf, may, send, timezone, toFailure } from '../../api/client.ts';
import type { Resource } from '../../api/resource.ts';
import { ActionButton, Button, CommandLines, Dialog, toast } from '../../components/actions.ts';
import { TextField } from '../../components/field.ts';
import { Moment } from '../../components/moment.ts';
import { FailureNotice } from '../../components/page.ts';
import { withLocalTimes } from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';
import { paths } from '../../router/paths.ts';
import type { AnyQuery } from './query_run.ts';

export type SavedQuery = SavedQueryResponse;

/** The path of the list of saved queries. */
export const savedQueriesPath = 'saved_queries/';
/** The path of a saved query by its id. */
export const savedQueryPath = (id: string): string => `${savedQueriesPath}${id}/`;

/** The saved queries of the project, each a link that opens and runs it, for those who may query. */
export function SavedQueries({
  saved: { data, failure, reload },
  openedId,
}: {
  readonly saved: Resource<ListOf<SavedQuery>>;
  readonly openedId: string | null;
}): View {
  return html`<section class="schema-list">
    <h2>Saved queries</h2>
    ${failure && html`<${FailureNotice} failure=${failure} onRetry=${reload} />`}
    ${data?.count === 0 && html`<p class="muted">None yet. A query that is saved has a link for others.</p>`}
    <ul class="saved-queries">
      ${data?.results.map(
        ({ id, name }) =>
          html`<li key=${id}>
            <a href="${paths.query}?saved=${id}" aria-current=${id === openedId ? 'true' : undefined}
              >${name}</a
            >
          </li>`,
      )}
    </ul>
  </section>`;
}

/** A conflict with what another person has saved. */
interface Conflict {
  readonly detail: string;
  readonly theirs: SavedQuery;
}

type Naming = 'save' | 'rename';

/** Saves the query of the page by name, and renames and deletes the one that is opened. */
export function SavedQueryBar({
  query,
  opened,
  isChanged,
  onSaved,
  onOpen,
  onDeleted,
}: {
  /** Null while it is no query. */
  readonly query: AnyQuery | null;
  readonly opened: SavedQuery | null;
  readonly isChanged: boolean;
  readonly onSaved: (saved: SavedQuery) => void;
  /** Shows what another person has saved. */
  readonly onOpen: (saved: SavedQuery) => void;
  readonly onDeleted: () => void;
}): View {
  const naming = useSignal<Naming | null>(null);
  const name = useSignal('');
  const isBusy = useSignal(false);
  const error = useSignal<string | undefined>(undefined);
  const conflict = useSignal<Conflict | null>(null);
  const close = () => {
    naming.value = null;
    conflict.value = null;
    error.value = undefined;
  };
  const start = (what: Naming) => {
    name.value = what === 'rename' ? (opened?.name ?? '') : '';
    naming.value = what;
  };
  /** Sends a change; a conflict reads what the other person has saved. */
  const change = async (request: ActionRequest, findTheirs: () => Promise<SavedQuery | undefined>) => {
    isBusy.value = true;
    error.value = undefined;
    try {
      onSaved(await send<SavedQuery>(request.method, request.path, { body: request.body }));
      close();
      toast('Saved.');
    } catch (failed) {
      const { status, message } = toFailure(failed);
      const theirs = status === 409 ? await findTheirs().catch(() => undefined) : undefined;
      conflict.value = theirs ? { detail: message, theirs } : null;
      error.value = theirs ? undefined : message;
      if (!theirs && naming.value === null) toast(message, 'danger');
    } finally {
      isBusy.value = false;
    }
  };
  const byName = async () =>
    (await api.get<ListOf<SavedQuery>>(savedQueriesPath, { name: name.value })).results[0];
  const byId = (id: string) => () => api.get<SavedQuery>(savedQueryPath(id));
  const request: ActionRequest | null =
    naming.value === 'rename' && opened
      ? {
          method: 'PATCH',
          path: savedQueryPath(opened.id),
          body: { name: name.value, version: opened.version },
          command: ['query', 'rename', opened.name, name.value],
        }
      : {
          method: 'POST',
          path: savedQueriesPath,
          body: { name: name.value, query },
          command: ['query', 'save', name.value, JSON.stringify(query)],
        };
  const submit = () => void change(request, byName);
  const saveChanges = () => {
    if (opened && query)
      void change(
        { method: 'PATCH', path: savedQueryPath(opened.id), body: { query, version: opened.version } },
        byId(opened.id),
      );
  };
  const overwrite = ({ id, version }: SavedQuery) =>
    void change({ method: 'PATCH', path: savedQueryPath(id), body: { query, version } }, byId(id));
  if (!may('query:write'))
    return (
      opened && html`<div class="saved-bar"><${SavedName} opened=${opened} isChanged=${isChanged} /></div>`
    );
  return html`<div class="saved-bar">
    ${opened && html`<${SavedName} opened=${opened} isChanged=${isChanged} />`}
    <span class="page-actions">
      ${
        opened &&
        html`<${Button} busy=${isBusy.value} disabled=${!isChanged || !query} onClick=${saveChanges}
          >Save changes<//
        >`
      }
      <${Button} disabled=${!query} onClick=${() => start('save')}>${opened ? 'Save as…' : 'Save…'}<//>
      ${opened && html`<${Button} onClick=${() => start('rename')}>Rename…<//>`}
      ${
        opened &&
        html`<${ActionButton}
          action=${{
            label: 'Delete',
            kind: 'danger',
            scope: 'query:write',
            method: 'DELETE',
            path: savedQueryPath(opened.id),
            command: ['query', 'delete', opened.name, '--yes'],
            confirm: {
              title: `Delete "${opened.name}"?`,
              text: 'Links to it end. Its text stays in the editor.',
            },
            done: 'Deleted.',
            onDone: onDeleted,
          }}
        />`
      }
    </span>
    ${
      naming.value !== null &&
      conflict.value === null &&
      html`<${Dialog}
        title=${naming.value === 'rename' ? 'Rename the query' : 'Save the query'}
        onClose=${close}
        actions=${html`<${Button} onClick=${close}>Close<//>
          <${Button}
            kind="primary"
            busy=${isBusy.value}
            disabled=${name.value.trim() === ''}
            onClick=${submit}
            >${naming.value === 'rename' ? 'Rename' : 'Save'}<//
          >`}
      >
        <${TextField}
          label="Name"
          required=${true}
          value=${name.value}
          error=${error.value}
          onInput=${(text: string) => (name.value = text)}
        />
        ${name.value.trim() !== '' && html`<${CommandLines} request=${request} />`}
      <//>`
    }
    ${
      conflict.value !== null &&
      html`<${ConflictDialog}
        conflict=${conflict.value}
        isRename=${naming.value === 'rename'}
        isBusy=${isBusy.value}
        onClose=${close}
        onOpen=${(theirs: SavedQuery) => {
          close();
          onOpen(theirs);
        }}
        onOverwrite=${overwrite}
      />`
    }
  </div>`;
}

/** The name of the opened query, and who saved it last. */
const SavedName = ({
  opened,
  isChanged,
}: {
  readonly opened: SavedQuery;
  readonly isChanged: boolean;
}): View =>
  html`<p class="saved-name">
    <strong>${opened.name}</strong>${isChanged && ' (changed)'}${' '}
    <span class="muted"
      >saved by ${opened.last_updated_by ?? 'a former user'}, <${Moment} at=${opened.last_updated_at}
    /></span>
  </p>`;

/** Asks whose query stays. */
function ConflictDialog({
  conflict: { detail, theirs },
  isRename,
  isBusy,
  onClose,
  onOpen,
  onOverwrite,
}: {
  readonly conflict: Conflict;
  /** A name that another query has is not taken from it. */
  readonly isRename: boolean;
  readonly isBusy: boolean;
  readonly onClose: () => void;
  readonly onOpen: (theirs: SavedQuery) => void;
  readonly onOverwrite: (theirs: SavedQuery) => void;
}): View {
  return html`<${Dialog}
    title="Another version of “${theirs.name}” is saved"
    onClose=${onClose}
    actions=${html`<${Button} onClick=${onClose}>Back<//>
      <${Button} onClick=${() => onOpen(theirs)}>Open that one<//>
      ${!isRename && html`<${Button} kind="danger" busy=${isBusy} onClick=${() => onOverwrite(theirs)}>Overwrite it<//>`}`}
  >
    <p>${withLocalTimes(detail, timezone.value)}</p>
  <//>`;
}
