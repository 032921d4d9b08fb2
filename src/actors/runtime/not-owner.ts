/** A command came to a node that does not own its actor, or no longer does. */
import { GatewayError } from '../../domain/errors.ts';

/** Nothing of the command has happened and nothing will: the owner may be asked. To a caller it is 503. */
export class NotOwner extends GatewayError {
  constructor() {
    super('Overloaded', undefined, 1);
    this.name = 'NotOwner';
  }
}
