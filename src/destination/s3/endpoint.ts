import { outgoingUrlFault, privateFault, publicLookupOr } from '../../network/outgoing_url.ts';
import { DestinationFault } from '../destination.ts';

/** Says why `endpoint` cannot be used as an endpoint, to follow "The endpoint_url is refused: "; null when it can. */
export function endpointFault(endpoint: string, allowPrivate: boolean): string | null {
  const fault = outgoingUrlFault(endpoint, allowPrivate);
  if (fault !== null && fault !== privateFault) return fault;
  const { search, hash } = new URL(endpoint);
  return search === '' && hash === '' ? fault : 'it must not hold a query or a fragment';
}

/** A name look-up that refuses private addresses at the moment of connecting. */
export const publicLookup = publicLookupOr(
  () =>
    new DestinationFault('EndpointRefused', `The endpoint_url is refused: ${privateFault}.`, {
      transient: false,
    }),
);
