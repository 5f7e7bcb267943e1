//! What every kind has, and references to other objects.

use wire::messages::*;

use super::tables;

tables! {
    META = OBJECT_META {
        honoured name: "The name, which no other object of the kind has in the namespace.";
        honoured generateName: "The beginning of a name that the server completes.";
        honoured namespace: "Where the object lives; the path of the request says it.";
        honoured labels: "Words to select objects by.";
        honoured annotations: "Notes of people and programs.";
        honoured finalizers: "Who must agree before the object goes.";
        honoured ownerReferences: "Whose it is: it goes when the last of its owners goes." => OWNER;
        honoured uid, resourceVersion, generation, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds:
            "Set by the server.";
        warned selfLink: "dropped; Kubernetes itself has no more use for it";
        warned managedFields: "dropped; who set which field is not recorded here";
    }
    OBJECT = OBJECT_REFERENCE {
        honoured kind, namespace, name, uid, apiVersion, resourceVersion, fieldPath;
    }
    OWNER = OWNER_REFERENCE {
        honoured apiVersion, kind, name, uid;
        honoured controller: "Whether this owner is the one that manages it; there is one at most.";
        honoured blockOwnerDeletion: "Whether an owner that is deleted in the foreground waits for it.";
    }
    SELECTOR = LABEL_SELECTOR {
        honoured matchLabels;
        honoured matchExpressions => REQUIREMENT;
    }
    REQUIREMENT = LABEL_SELECTOR_REQUIREMENT {
        honoured key, operator, values;
    }
    SECRET_OF = SECRET_REFERENCE {
        honoured name, namespace;
    }
    LOCAL_SECRET = LOCAL_OBJECT_REFERENCE {
        honoured name;
    }
}
