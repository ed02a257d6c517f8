import {
  type AddAction,
  decodePath,
  type MetaDataAction,
  type ParsedAction,
  type ProtocolAction,
  type RemoveAction,
  type TransactionAction,
} from './actions.ts';

/** A table after a version. */
export interface TableState {
  protocol: ProtocolAction | null;
  metaData: MetaDataAction | null;
  /** The files of the table by decoded path. */
  readonly live: Map<string, AddAction>;
  /** Files that were removed, by decoded path. Readers of older versions need them for a while. */
  readonly removed: Map<string, RemoveAction>;
  readonly transactions: Map<string, TransactionAction>;
}

export const emptyState = (): TableState => ({
  protocol: null,
  metaData: null,
  live: new Map(),
  removed: new Map(),
  transactions: new Map(),
});

/** Applies the actions of a commit or of a checkpoint. */
export function applyActions(state: TableState, actions: Iterable<ParsedAction>): void {
  for (const { add, remove, metaData, protocol, txn } of actions) {
    if (remove) {
      const path = decodePath(remove.path);
      state.live.delete(path);
      state.removed.set(path, remove);
    }
    if (add) {
      const path = decodePath(add.path);
      state.removed.delete(path);
      state.live.set(path, add);
    }
    if (metaData) state.metaData = metaData;
    if (protocol) state.protocol = protocol;
    if (txn) state.transactions.set(txn.appId, txn);
  }
}
